"""Probes: pairs whose verdict is known without a person's label, and how a judge fares."""
