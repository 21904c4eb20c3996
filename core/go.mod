module github.com/ephemeralgo/ephemeral/core

go 1.26
