"""Steps that several commands share: connect, check, carry, plan, submit, read the status."""
