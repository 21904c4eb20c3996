module github.com/ephemeralgo/ephemeral/patterns/fxmodule

go 1.26.0

require (
	github.com/ephemeralgo/ephemeral/core v0.1.0
	github.com/ephemeralgo/ephemeral/patterns/jobs v0.1.0
	github.com/stretchr/testify v1.12.1
	go.uber.org/fx v1.24.0
)

require (
	go.uber.org/dig v1.19.0 // indirect
	go.uber.org/multierr v1.10.0 // indirect
	go.uber.org/zap v1.26.0 // indirect
	go.yaml.in/yaml/v3 v3.0.5 // indirect
	golang.org/x/sys v0.50.0 // indirect
)

replace (
	github.com/ephemeralgo/ephemeral/core => ../../core
	github.com/ephemeralgo/ephemeral/patterns/jobs => ../jobs
)
