"""Looking at a cluster: what is asked of a site, what it answered, and its profile as text."""
