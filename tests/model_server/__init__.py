"""A model server to try the product with, and to tell what to answer in tests."""
