"""Argo CD as flows use it: refresh it, wait for layers, explain what blocks a delivery."""
