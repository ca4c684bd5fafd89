print("valet")
