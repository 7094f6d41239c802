"""What a problem and a solver are: protocols, task data, losses, norms, forms, and bases that problems share."""
