"""What an administrator sees of people's memory: how it is without opening it, and, on the record, what stands in it."""
