// Package file keeps the values of a [data.Store] in a directory, one file for each key.
package file
