module github.com/ephemeralgo/ephemeral/atoms/durable/flow

go 1.26

require (
	github.com/ephemeralgo/ephemeral/atoms/durable v0.1.0
	github.com/ephemeralgo/ephemeral/core v0.1.0
)

replace github.com/ephemeralgo/ephemeral/core => ../../../core

replace github.com/ephemeralgo/ephemeral/atoms/durable => ..
