"""The sections of the page: functions of the results that give HTML, or nothing where nothing was measured."""
