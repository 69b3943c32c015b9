"""What administrators see of people's memory: how it is without opening it; on the record, what stands in it."""
