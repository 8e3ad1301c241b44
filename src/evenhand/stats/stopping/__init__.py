"""Tests that may stop early: how many pairs to plan (`planning`), the looks on the way
(`sequential`), the test at the planned end (`final_test`).
"""
