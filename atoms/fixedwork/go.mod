module github.com/ephemeralgo/ephemeral/atoms/fixedwork

go 1.26
