module orderkit/tests/lab/argocdcrds

go 1.24.0
