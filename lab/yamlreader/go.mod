module orderkit/tests/lab/yamlreader

go 1.27.0

require (
	go.yaml.in/yaml/v2 v2.4.3
	go.yaml.in/yaml/v3 v3.0.4
)
