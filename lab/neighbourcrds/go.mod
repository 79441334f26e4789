module orderkit/tests/lab/neighbourcrds

go 1.27.0
