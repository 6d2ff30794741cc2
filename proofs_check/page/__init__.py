"""The theorem on one page: every claim with the evidence gathered for it just now, and figures."""
