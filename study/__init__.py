"""What a study's config means, may say and costs."""
