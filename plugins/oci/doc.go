// Package oci fetches a classifier module that was published as an OCI artifact.
//
// An artifact is an image manifest of the artifact type [ArtifactType] with one layer of
// the media type [LayerType], which is the module. It is named by the digest of its
// manifest and never by a tag: what is fetched is verified against that digest, and so
// what a name stands for can't change. Whatever was fetched is kept in a directory by
// its digest and verified again when it is read from there.
//
// It comes from a registry over HTTPS, or from a directory in the OCI image layout, which
// needs no network. The package asks registries without credentials, and doesn't know
// what a module is: plugins checks it.
//
//	ref, err := oci.Parse("oci://registry.example.com/team/mine@sha256:…")
//	if err != nil { … }
//	module, err := oci.Fetch(ctx, ref, oci.Options{CacheDir: dir, MaxBytes: 2 << 20})
package oci
