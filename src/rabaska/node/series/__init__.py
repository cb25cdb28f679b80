"""Numbers over time: what a program reports as it trains, found where it leaves them."""
