classifier "x" {
  module  = "x.wasm"
  sha256  = "0000000000000000000000000000000000000000000000000000000000000001"
  profile = "wasi"
  memory  = "128MiB" # ERROR: Size out of range
}

provider "openai" {
  base_url   = "https://api.openai.com/v1"
  classifier = classifier.x
  key "main" { secret = env("OPENAI_API_KEY") }
}

route_group "gpt-4o" {
  models    = ["gpt-4o-2024-08-06"]
  endpoints = ["openai.chat"]
  channel "openai" { provider = provider.openai }
}
