provider "a" {
  base_url = "https://a.internal"
  auth     = "none"
}

route_group "g" {
  models    = ["m"]
  endpoints = ["openai.chat"]
  channel "a" { provider = provider.a }
}

caller "team-a" {
  key_sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
  groups     = [route_group.g]
  budget {
    per_route = 2 # ERROR: Unknown argument
  }
}
