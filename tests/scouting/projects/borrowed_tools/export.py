import argparse


def model_export(path):
    return path


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('filepath', help='the output file')
    parser.add_argument('--checkpoint', help='model checkpoint, .pt file')
    model_export(parser.parse_args().filepath)
