"""Confidence that means what it says: signals and curves (`curves`), learned on labels (`fit`),
checked on others (`reliability`), and the threshold above which agreement is guaranteed
(`guarantee`).
"""
