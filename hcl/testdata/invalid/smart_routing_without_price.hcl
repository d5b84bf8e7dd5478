provider "a" {
  base_url = "https://a.internal"
  auth     = "none"
}

route_group "priced" {
  models    = ["m"]
  endpoints = ["openai.chat"]
  strategy  = "cost"
  channel "a" {
    provider = provider.a
    cost     = { input = 1, output = 2 }
  }
}

route_group "free" {
  models    = ["m"]
  endpoints = ["openai.chat"]
  channel "a" { provider = provider.a }
}

caller "team-a" {
  key_sha256 = "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
  groups     = [route_group.priced, route_group.free]
  routing    = "smart" # ERROR: No price for smart routing
}
