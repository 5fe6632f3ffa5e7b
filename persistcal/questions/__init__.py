"""Questions with their reference answers: public datasets and users' own."""
