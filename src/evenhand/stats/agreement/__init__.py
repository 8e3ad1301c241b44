"""Agreement of a judge with labels (`labels`), and of several raters with each other (`raters`)."""
