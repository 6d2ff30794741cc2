"""Bad days: what is missing, damaged, hostile, too large or interrupted ends with one sentence, and breaks nothing."""
