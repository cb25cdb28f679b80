"""A search: many trials of one program with other values, kept in one folder (see `study`)."""
