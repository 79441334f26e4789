module orderkit/tests/lab/argocdcrds

go 1.27.0
