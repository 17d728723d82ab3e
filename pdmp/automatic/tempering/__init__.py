"""`pdmp.sample(model, tempered=True)`: all modes with their shares, and the evidence."""
