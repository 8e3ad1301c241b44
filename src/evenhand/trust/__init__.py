"""Should this judge be believed? Audits, probes, calibrations, and what follows from them."""
