// Package examples has whole programs, one in each directory. See the README.
package examples
