"""Singer's slides of 2008: online methods in an l1 ball, and sequential portfolios."""
