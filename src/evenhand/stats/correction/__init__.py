"""Human labels against the judge's errors: which pairs to label (`labels`), and the win rate
corrected by them (`corrected_rate`).
"""
