"""What notebooks show for hpo's objects; imported only by them."""
