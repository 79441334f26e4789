"""Run scaffolder templates and render skeletons."""
