"""What all of Orderkit stands on: errors, names, Kubernetes objects, patterns, Argo CD's words."""
