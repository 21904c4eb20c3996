module github.com/ephemeralgo/ephemeral/atoms/mesh

go 1.26.0

require (
	github.com/anishathalye/porcupine v1.3.1
	github.com/ephemeralgo/ephemeral/core v0.1.0
	github.com/nats-io/nats.go v1.55.0
)

require (
	github.com/klauspost/compress v1.20.4 // indirect
	github.com/nats-io/nkeys v0.4.17 // indirect
	github.com/nats-io/nuid v1.0.1 // indirect
	golang.org/x/crypto v0.58.0 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

require (
	github.com/stretchr/testify v1.12.1
	go.yaml.in/yaml/v3 v3.0.5 // indirect
)

replace github.com/ephemeralgo/ephemeral/core => ../../core
