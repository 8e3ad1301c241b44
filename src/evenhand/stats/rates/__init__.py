"""Rates of one comparison of two models, from the outcomes of its pairs: the win rate (`win_rate`),
then what may bend it, the position (`position_bias`) and the length (`length_bias`) of the
answers, and a judge of a contestant's family (`family_effect`).
"""
