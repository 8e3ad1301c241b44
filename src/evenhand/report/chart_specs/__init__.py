"""The charts themselves. These modules load Altair; `evenhand.report.charts` is their door."""
