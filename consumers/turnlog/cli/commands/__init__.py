"""The commands as they are declared: names, options, help. The work is imported when one is run."""
