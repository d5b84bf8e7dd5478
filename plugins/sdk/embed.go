// Package sdk carries the sources that authors of classifiers build with: one file for C,
// Rust and Go, a small library for AssemblyScript. The program writes them beside a new
// plugin, so that it builds without a checkout of Fourgate. Nothing here runs in the
// proxy. The package plugins/starter is its only caller.
package sdk

import "embed"

// Files holds a directory for each language: c, rust, go, assemblyscript.
//
//go:embed c/*.h rust/*.rs go/*.go assemblyscript/*.ts assemblyscript/build.mjs
var Files embed.FS
