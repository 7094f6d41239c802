"""Chen, Liu, Ye, "Learning incoherent sparse and low-rank patterns from multiple tasks", ACM TKDD 5(4), 2012."""
