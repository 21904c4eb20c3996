module github.com/ephemeralgo/ephemeral/complete

go 1.26

require (
	github.com/ephemeralgo/ephemeral/atoms/fixedwork v0.1.0
	github.com/ephemeralgo/ephemeral/core v0.1.0
)

replace github.com/ephemeralgo/ephemeral/atoms/fixedwork => ../atoms/fixedwork

replace github.com/ephemeralgo/ephemeral/core => ../core
