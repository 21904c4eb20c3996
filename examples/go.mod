module github.com/ephemeralgo/ephemeral/examples

go 1.26.0
