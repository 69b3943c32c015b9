"""Who you are: accounts, preferences, who may sign up, and the first administrator."""
