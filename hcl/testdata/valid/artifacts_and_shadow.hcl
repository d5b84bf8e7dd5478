classifier "from_registry" {
  module = "oci://registry.example.com/team/x@sha256:0000000000000000000000000000000000000000000000000000000000000001"
  shadow {
    module = "x.wasm"
    sha256 = "0000000000000000000000000000000000000000000000000000000000000002"
  }
}
classifier "from_layout" {
  module = "oci-layout://layout/x@sha256:0000000000000000000000000000000000000000000000000000000000000003"
  shadow {
    module = "builtin:openai"
  }
}

provider "openai" {
  base_url   = "https://api.openai.com/v1"
  classifier = classifier.from_registry
  key "main" { secret = env("OPENAI_API_KEY") }
}

provider "other" {
  base_url   = "https://api.example.com/v1"
  classifier = classifier.from_layout
  key "main" { secret = env("OPENAI_API_KEY") }
}

route_group "gpt-4o" {
  models    = ["gpt-4o-2024-08-06"]
  endpoints = ["openai.chat"]
  channel "openai" { provider = provider.openai }
  channel "other" { provider = provider.other }
}
