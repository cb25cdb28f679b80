"""What rabaska.toml and cluster profiles may say, and how mistakes in them are told."""
