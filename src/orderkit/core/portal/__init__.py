"""What Backstage runs and shows: templates, forms, rendering, the portal's copies."""
