"""All that the tests need from the system, and how it gets there before the first of them."""
