"""Install and maintain a platform: bootstrap, upgrade, drift, doctor, webhooks."""
