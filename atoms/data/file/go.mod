module github.com/ephemeralgo/ephemeral/atoms/data/file

go 1.26

require github.com/ephemeralgo/ephemeral/atoms/data v0.1.0

require github.com/ephemeralgo/ephemeral/core v0.1.0 // indirect

replace github.com/ephemeralgo/ephemeral/core => ../../../core

replace github.com/ephemeralgo/ephemeral/atoms/data => ..
